from __future__ import annotations


class RequestTemplates:
    """Numbers templates (requests without URL), few in a crawl, and keeps each while its number is in use."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._texts: list[bytes] = []
        self._uses: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def number_of(self, text: bytes, uses: int = 1) -> int:
        number = self._numbers.get(text)
        if number is None:
            if self._free:
                number = self._free.pop()
                self._texts[number] = text
            else:
                number = len(self._texts)
                self._texts.append(text)
                self._uses.append(0)
            self._numbers[text] = number
        self._uses[number] += uses
        return number

    def text_of(self, number: int) -> bytes:
        return self._texts[number]

    def use_once(self, number: int) -> bytes:
        """Return a template for one of its uses; the last use deletes it."""
        text = self._texts[number]
        self._uses[number] -= 1
        if not self._uses[number]:
            del self._numbers[text]
            self._texts[number] = b""
            self._free.append(number)
        return text
