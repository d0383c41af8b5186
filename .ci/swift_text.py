"""Swift source as text: blanks out what is not code, so that a rule about code does not stumble over prose."""


def code_only(source):
    """The source with comments and string contents blanked; every other character keeps its line and column.

    Code inside a string interpolation stays.
    """
    return _Blanker(source).run()


def balanced_end(code, start):
    """The index after the bracket that closes the one at `start`, or the end of the text."""
    pairs = {"(": ")", "{": "}", "[": "]"}
    opener, closer, depth = code[start], pairs[code[start]], 0
    for index in range(start, len(code)):
        if code[index] == opener:
            depth += 1
        elif code[index] == closer:
            depth -= 1
            if depth == 0:
                return index + 1
    return len(code)


class _Blanker:
    def __init__(self, source):
        self.source = source
        self.out = []
        self.at = 0

    def run(self):
        self._code(until=None)
        return "".join(self.out)

    def _take(self, count, keep):
        for character in self.source[self.at : self.at + count]:
            self.out.append(character if keep or character == "\n" else " ")
        self.at += count

    def _starts(self, text):
        return self.source.startswith(text, self.at)

    def _code(self, until):
        depth = 0
        while self.at < len(self.source):
            character = self.source[self.at]
            if self._starts("//"):
                end = self.source.find("\n", self.at)
                self._take((len(self.source) if end < 0 else end) - self.at, keep=False)
            elif self._starts("/*"):
                self._block_comment()
            elif character == '"' or (character == "#" and self._raw_string()):
                self._string()
            else:
                if until and character == "(":
                    depth += 1
                elif until and character == until:
                    if depth == 0:
                        return
                    depth -= 1
                self._take(1, keep=True)

    def _raw_string(self):
        end = self.at
        while end < len(self.source) and self.source[end] == "#":
            end += 1
        return self.source[end : end + 1] == '"'

    def _block_comment(self):
        depth = 0
        while self.at < len(self.source):
            if self._starts("/*"):
                depth += 1
                self._take(2, keep=False)
            elif self._starts("*/"):
                depth -= 1
                self._take(2, keep=False)
                if depth == 0:
                    return
            else:
                self._take(1, keep=False)

    def _string(self):
        hashes = 0
        while self._starts("#"):
            hashes += 1
            self._take(1, keep=True)
        quote = '"""' if self._starts('"""') else '"'
        self._take(len(quote), keep=True)
        close, escape = quote + "#" * hashes, "\\" + "#" * hashes
        while self.at < len(self.source):
            if self._starts(close):
                self._take(len(close), keep=True)
                return
            if self._starts(escape + "("):
                self._take(len(escape), keep=False)
                self._take(1, keep=True)
                self._code(until=")")
                self._take(1, keep=True)
            elif self._starts(escape):
                self._take(len(escape) + 1, keep=False)
            elif quote == '"' and self._starts("\n"):
                return
            else:
                self._take(1, keep=False)
