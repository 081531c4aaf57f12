"use strict";
(() => {
  const selects = [...document.querySelectorAll("select[data-filter]")];
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  function filter() {
    const wanted = selects.filter((one) => one.value).map((one) => [one.dataset.filter, one.value]);
    const fits = (node) => wanted.every(([key, value]) => node.dataset[key] === value);
    const matrix = document.getElementById("matrix");
    let shown = 0;
    for (const item of all(".case", matrix)) {
      item.hidden = !fits(item);
      shown += !item.hidden;
    }
    for (const row of all("tbody tr", matrix)) row.hidden = !all(".case", row).some((item) => !item.hidden);
    const engine = wanted.find(([key]) => key === "engine");
    for (const cell of all("td[data-engine], th[data-engine]", matrix)) cell.hidden = Boolean(engine) && cell.dataset.engine !== engine[1];
    for (const row of all('table[data-table="matrix"] tbody tr')) row.hidden = !fits(row);
    document.getElementById("shown").textContent = `${shown} of ${all(".case", matrix).length} cases shown`;
  }
  for (const select of selects) select.addEventListener("change", filter);
  if (selects.length) filter();

  const cells = (row) => [...row.cells].map((cell) => cell.textContent);
  const read = (table) => [...table.rows].filter((row) => !row.hidden).map(cells);
  // A spreadsheet would run a cell that begins like a formula; a quote before it keeps it text.
  const field = (text) => {
    const plain = /^[=+@\t\r]|^-(?![\d.]|$)/.test(text) ? "'" + text : text;
    return /[",\n\r]/.test(plain) ? '"' + plain.replaceAll('"', '""') + '"' : plain;
  };
  const csv = (rows) => rows.map((row) => row.map(field).join(",")).join("\n") + "\n";
  const escaped = (text) => text.replace(/[\\|<>`*_[\]]/g, "\\$&").replace(/\s+/g, " ");
  const line = (row) => "| " + row.join(" | ") + " |";
  const markdown = (rows) =>
    [line(rows[0].map(escaped)), line(rows[0].map(() => "---")), ...rows.slice(1).map((row) => line(row.map(escaped)))].join("\n") + "\n";

  function save(text, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  for (const table of all("table[data-table]")) {
    const name = [table.dataset.table, table.dataset.key].filter(Boolean).join("-");
    const tools = document.createElement("div");
    tools.className = "tools";
    for (const [label, form, suffix] of [["CSV", csv, "csv"], ["Markdown", markdown, "md"]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.setAttribute("aria-label", `Save ${table.caption.textContent} as ${label}`);
      button.addEventListener("click", () => save(form(read(table)), `${name}.${suffix}`));
      tools.append(button);
    }
    table.parentElement.after(tools);
  }
})();
