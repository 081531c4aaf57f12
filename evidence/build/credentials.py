"""Finds credentials in text: the one door to detect-secrets, and the tokens that it does not know.

Its detectors are regular expressions that take microseconds a line; a package holds a hundred million
bytes of hashes and model text. So every detector stands beside the literals that its finds must contain, and
is asked only about text that has one. Entropy detectors are left out: every line here holds a digest.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

# Detector class in detect_secrets.plugins -> lower-case literals, one of which any find of it contains.
DETECTORS: dict[str, tuple[bytes, ...]] = {
    "artifactory.ArtifactoryDetector": (b"akc", b"apa", b"apb", b"apc", b"apd", b"ape", b"apf"),
    "aws.AWSKeyDetector": (b"a3t", b"abia", b"acca", b"akia", b"asia", b"aws"),
    "azure_storage_key.AzureStorageKeyDetector": (b"accountkey=",),
    "basic_auth.BasicAuthDetector": (b"://",),
    "github_token.GitHubTokenDetector": (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"),
    "gitlab_token.GitLabTokenDetector": (b"glpat-", b"gldt-", b"glft-", b"glrt-", b"glsoat-", b"gr1348941"),
    "jwt.JwtTokenDetector": (b"eyj",),
    "mailchimp.MailchimpDetector": (b"-us",),
    "npm.NpmDetector": (b":_authtoken",),
    "openai.OpenAIDetector": (b"t3blbkfj",),
    "private_key.PrivateKeyDetector": (b"private key", b"putty-user-key"),
    "pypi_token.PypiTokenDetector": (b"pypi-age",),
    "sendgrid.SendGridDetector": (b"sg.",),
    "slack.SlackDetector": (b"xoxa-", b"xoxb-", b"xoxo-", b"xoxp-", b"xoxr-", b"xoxs-", b"hooks.slack.com"),
    "square_oauth.SquareOAuthDetector": (b"sq0csp-",),
    "stripe.StripeDetector": (b"k_live_",),
    "twilio.TwilioKeyDetector": (b"ac", b"sk"),
}
# What a detector's find must look like at least, where its literals are common in plain text.
_SHAPES = {
    "artifactory.ArtifactoryDetector": re.compile(rb"AKC[a-zA-Z0-9]{10}|\bAP[\dA-F][a-zA-Z0-9]{8}"),
    "aws.AWSKeyDetector": re.compile(
        rb"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}|(?i:aws).{0,60}[0-9a-zA-Z/+]{40}"
    ),
    # The three letters alone stand in one of a few hundred ids that an engine draws.
    "jwt.JwtTokenDetector": re.compile(rb"eyJ[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]"),
    "twilio.TwilioKeyDetector": re.compile(rb"(?:AC|SK)[a-z0-9]{32}"),
}
# Tokens of model hubs, clouds and engines that detect-secrets has no detector for.
TOKENS = {
    b"hf_": re.compile(rb"\bhf_[A-Za-z0-9]{20,}"),
    b"nvapi-": re.compile(rb"\bnvapi-[A-Za-z0-9_-]{20,}"),
    b"github_pat_": re.compile(rb"\bgithub_pat_[A-Za-z0-9_]{22,}"),
    b"aiza": re.compile(rb"\bAIza[A-Za-z0-9_-]{35}"),
    b"sk-": re.compile(rb"\bsk-(?:ant-|proj-|or-v1-|svcacct-)?(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}"),
    b"npm_": re.compile(rb"\bnpm_[A-Za-z0-9]{36}"),
    b"dop_v1_": re.compile(rb"\bdop_v1_[a-f0-9]{64}"),
}
AUTHORIZATION = re.compile(
    rb"(?i)\b(?:proxy-)?authorization(?:\\?[\"'])?\s*[:=,]\s*(?:\\?[\"'])?(?:bearer|basic|digest|negotiate|token|apikey)\s+[^\s\"'\\<{]{4,}"
)
BEARER = re.compile(rb"(?i)\bbearer\s+(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{16,}")
# A setting of a launch, a configuration or a URL whose name says that its value is a secret.
ASSIGNED = re.compile(
    rb"(?i)(?:api[_-]?key|auth[_-]?key|access[_-]?key|secret(?:[_-]?key)?|passwd|password|passphrase"
    rb"|(?:hf|hub|auth|access|api|bearer|refresh|session|id)[_-]?token|[A-Z0-9]_TOKEN)"
    rb"(?:\\?[\"'])?\s*(?:[:=,]|\s)\s*(?:\\?[\"'])?(?![{<$%*]|null\b|true\b|false\b|none\b)([^\s\"'\\,}{\]]{6,})"
)
# Every find of it holds one of these; the package's own keys (`completionTokens`, `tokenIdsSha256`) hold none.
_ASSIGNED_WORDS = (b"key", b"secret", b"passw", b"passphrase", b"_token", b"-token", b"hftoken", b"hubtoken", b"authtoken",
                   b"accesstoken", b"apitoken", b"bearertoken", b"refreshtoken", b"sessiontoken", b"idtoken")  # fmt: skip


# One search for what no token lacks, before each is looked for by itself.
_ANY_SHAPE = re.compile(b"|".join(b"(?:" + shape.pattern + b")" for shape in _SHAPES.values()))
_ANY_LITERAL = (*TOKENS, *(one for name, all_of in DETECTORS.items() if name not in _SHAPES for one in all_of))
# Every token holds a run of so many characters of this alphabet, where prose and numbers hold none.
_RUN = b"a" * 16
_TOKEN_BYTES = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_+/=-.:")
_ALPHABET = bytes(97 if place in _TOKEN_BYTES else 32 for place in range(256))


def suspicious(text: bytes) -> bool:
    """Whether the text may hold a credential; cheap, and true for more than holds one."""
    lower = text.lower()
    if (b"authorization" in lower or b"bearer" in lower) and (AUTHORIZATION.search(text) or BEARER.search(text)):
        return True
    if (b"://" in text and b"@" in text) or b"private key" in lower or b"putty-user-key" in lower:
        return True
    if b"aws" in lower and _SHAPES["aws.AWSKeyDetector"].search(text):
        return True
    if b"AKC" in text or (b"AP" in text and _SHAPES["artifactory.ArtifactoryDetector"].search(text)):
        return True
    long = _long_words(text)
    return bool(long) and _holds_token(long)


def _long_words(text: bytes) -> bytes:
    """The words that are long enough to be tokens, one a line."""
    shape = text.translate(_ALPHABET)
    found = []
    at = shape.find(_RUN)
    while at >= 0:
        end = shape.find(b" ", at)
        end = len(text) if end < 0 else end
        found.append(text[shape.rfind(b" ", 0, at) + 1 : end])
        at = shape.find(_RUN, end)
    return b"\n".join(found)


def _holds_token(words: bytes) -> bool:
    lower = words.lower()
    # The shapes hold capitals, but for one: a digest is not searched for them.
    shaped = (lower != words or b"aws" in lower) and _ANY_SHAPE.search(words) is not None
    if not shaped and not any(literal in lower for literal in _ANY_LITERAL):
        return False
    return any(literal in lower and shape.search(words) for literal, shape in TOKENS.items()) or any(
        _wanted(name, lower, words) for name in DETECTORS
    )


def _wanted(name: str, lower: bytes, text: bytes) -> bool:
    for literal in DETECTORS[name]:
        if literal in lower:
            break
    else:
        return False
    if name == "basic_auth.BasicAuthDetector":
        return b"@" in text
    shape = _SHAPES.get(name)
    return shape is None or shape.search(text) is not None


def assigned(text: bytes) -> bool:
    """Whether some setting in the text gives a value to a name that says secret."""
    lower = text.lower()
    return any(word in lower for word in _ASSIGNED_WORDS) and ASSIGNED.search(text) is not None


def find(line: bytes, *, settings: bool) -> Iterator[tuple[str, str]]:
    """Yield (kind, what was found) for each credential in one line.

    `settings` also reads `NAME=value` and `"name": "value"` with names that say secret: right for what a
    publisher wrote, wrong for what a model wrote.
    """
    for match in (*AUTHORIZATION.finditer(line), *BEARER.finditer(line)):
        yield "authorization", match[0].decode("utf-8", "replace")
    for pattern in TOKENS.values():
        for match in pattern.finditer(line):
            yield "credential", match[0].decode("utf-8", "replace")
    if settings:
        for match in ASSIGNED.finditer(line):
            yield "credential", match[1].decode("utf-8", "replace")
    lower = line.lower()
    text = line.decode("utf-8", "replace")
    for name in DETECTORS:
        if _wanted(name, lower, line):
            for value in _detector(name).analyze_string(text):
                yield "credential", str(value)


@functools.cache
def _detector(name: str) -> Any:
    # Imported when first needed: it brings an HTTP client along, and most packages hold nothing suspicious.
    import importlib

    module, kind = name.split(".")
    return getattr(importlib.import_module(f"detect_secrets.plugins.{module}"), kind)()
