"""The archive: a closed grammar that the writer writes and the reader demands.

    grammar.py   what a member name, a tar header and a gzip frame look like; the one set of rules
    gzipframe.py bytes of a .tgz -> bytes of its one tar stream
    tarwalk.py   bytes of a tar stream -> members, each header compared byte for byte
    bodies.py    the same for runs of bodies, which are nearly all of a package
    members.py   names and digests in little room
    sums.py      SHA256SUMS and the detached digest files
    strictjson.py  JSON as the package allows it
    beside.py    bytes that a process beside this one makes
    folder.py    an unpacked package, read by descriptor
    reader.py    one pass over a .tgz: digests of the file, the stream and every member
    unpack.py    verified bytes into a fresh folder

A member `demo/a.txt` of two bytes `hi` is exactly: one 512-byte header that `grammar.header("demo/a.txt", 2, 0o644)`
rebuilds, `hi`, 510 zero bytes. The stream ends with two zero blocks and nothing after them. Whatever differs is
refused with a stable code and the byte offset, before anything is written to disk.
"""
