"""The functions that a C++ file declares and defines outside of function bodies."""
import re

BRACKETS = {"(": ")", "{": "}"}
NAME = re.compile(r"((?:\w+(?:<[^<>]*>)?::)*(?:operator\s*(?:\(\s*\)|[^\s\w(]+|\w+)|~?\w+))\s*\(")
NESTED = r"\((?:[^()]|\([^()]*\))*\)"
NOISE = re.compile(rf"\[\[.*?\]\]|\b(?:alignas|decltype|explicit|noexcept|__attribute__)\s*{NESTED}"
                   r"|\btemplate\s*<.*?>(?=\s*[\w\[:~])|\b(?:public|private|protected)\s*:", re.S)
CLASS = re.compile(r"(?:class|struct|union)\s+([\w:<>]+)[^()=]*$", re.S)
NAMESPACE = re.compile(r"(?:inline\s+)?namespace\b\s*([\w:]*)\s*$|extern\s*$")


def after(text, start):
    """Returns the position after the bracket that closes the one at start."""
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] in BRACKETS) - (text[position] in BRACKETS.values())
        if depth == 0:
            return position + 1
    return len(text)


def functions(text):
    """Yields (name with its classes, whether it has a body, position) of each function, without those
    in unnamed namespaces. text: without comments and literals."""
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.M)
    scopes, start, position = [], 0, 0
    while position < len(text):
        mark = text[position]
        if mark == "(":
            position = after(text, position)
            continue
        if mark in ";{}":
            head = NOISE.sub(" ", text[start:position]).strip()
            scope = mark == "{" and (NAMESPACE.match(head) or CLASS.match(head))
            if scope:
                scopes.append((scope.re is CLASS, scope[1]))
            elif mark == "}":
                scopes = scopes[:-1]
            else:
                found = NAME.search(head)
                classes = [name for is_class, name in scopes if is_class]
                if found and "=" not in head[:found.start()] and (False, "") not in scopes:
                    at = start + len(text[start:position]) - len(text[start:position].lstrip())
                    yield "::".join(classes + [re.sub(r"<[^<>]*>|\s", "", found[1])]), mark == "{", at
                if mark == "{":
                    position = after(text, position)
                    # An initializer of a member or an argument: the statement goes on.
                    if not found or re.match(r"\s*[,;{]", text[position:position + 20]):
                        continue
                    start = position
                    continue
            start = position + 1
        position += 1
