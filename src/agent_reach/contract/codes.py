"""Every finding code of a contract, with the sentence that explains it; docs/contract.md is generated from it."""

from __future__ import annotations

CODES: dict[str, str] = {
    "E_ALIAS": "An alias names no anchor, contains itself, repeats an anchor's name, or expands to too many entries.",
    "E_CHOICE": "A profile has to be chosen, or the chosen profile or target is not in the contract.",
    "E_DOCUMENTS": "The file holds more than one YAML document.",
    "E_DUPLICATE_ENTRY": "Two entries of one list have the same merge key (path, name, or host, port and protocol).",
    "E_DUPLICATE_KEY": "A key is written twice in one mapping; an own key beside a merged one (`<<`) is none.",
    "E_EMPTY": "The file holds no mapping at all.",
    "E_ENCODING": "The file is not UTF-8, or holds control or text-direction characters.",
    "E_EXTENDS": "`extends` names nothing, leads out of the repository, or comes back to itself.",
    "E_FILE": "The file cannot be read.",
    "E_HOST": "A host is not written in its one canonical form.",
    "E_MISSING": "A key that the entry needs is not there.",
    "E_NOT_YET": "The key or form is planned; this version does not enforce it and refuses it, never ignores it.",
    "E_PATH": "A path has more than one possible meaning, or none.",
    "E_PERMISSIONS": "The file belongs to another user or can be written by others.",
    "E_SIZE": "The file is larger than 1 MiB, nested too deep, or has too many entries.",
    "E_SYNTAX": "The file is not YAML.",
    "E_TAB": "A line is indented with a tab; YAML indents with spaces.",
    "E_TAG": "A YAML tag (`!…`) is used; contracts have none.",
    "E_TYPE": "A value has another type than the key asks for, or has to be quoted to be text.",
    "E_UNIT": "A duration or size has no unit, or one that is not in the list.",
    "E_UNKNOWN_KEY": "The key is not part of a contract.",
    "E_VALUE": "The value is not one of those that the key takes.",
    "E_VERSION": "`version` is absent, unknown, or newer than this reach.",
}
