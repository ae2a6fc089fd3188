"""The icons, as paths in a square of 16 by 16 that are stroked in the text's colour."""

from __future__ import annotations

ICONS: dict[str, str] = {
    "alert": "M8 2.2 14.5 13.5H1.5ZM8 6.5v3M8 11.4v.1",
    "arrow": "M3 8h10M9 4l4 4-4 4",
    "back": "M13 8H3M7 4 3 8l4 4",
    "bolt": "M9 1.5 3.5 9H8l-1 5.5L12.5 7H8Z",
    "check": "M3 8.5 6.5 12 13 4.5",
    "clock": "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 4.8V8l2.2 1.6",
    "copy": "M5.5 5.5h8v8h-8ZM10.5 5.5v-3h-8v8h3",
    "cross": "M4 4l8 8M12 4l-8 8",
    "dots": "M3.5 8h.1M8 8h.1M12.5 8h.1",
    "down": "M4 6l4 4 4-4",
    "events": "M2 8h3l2-5 3 10 2-5h2",
    "failures": "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 5v3.5M8 10.9v.1",
    "hand": "M3 8a5 5 0 1 1 1.5 3.5M3 12.5V9.3h3.2",
    "home": "M2.5 7.5 8 2.8l5.5 4.7M4 6.5v7h8v-7",
    "jobs": "M2.5 4h11M2.5 8h11M2.5 12h11",
    "key": "M6 10.5a3 3 0 1 0 0-5 3 3 0 0 0 0 5ZM8.6 8H14v2.5M11.5 8v2",
    "link": (
        "M6.5 9.5 9.5 6.5M7 4.5l1.2-1.2a3 3 0 0 1 4.4 4.3L11.4 9"
        "M9 11.5l-1.2 1.2a3 3 0 0 1-4.4-4.3L4.6 7"
    ),
    "moon": "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5Z",
    "pause": "M5.5 3.5v9M10.5 3.5v9",
    "play": "M5 3.2v9.6L12.5 8Z",
    "plus": "M8 3v10M3 8h10",
    "ready": "M8 13A5 5 0 1 0 8 3a5 5 0 0 0 0 10Z",
    "renew": "M13 8a5 5 0 1 1-1.5-3.5M13 3v3.2H9.8",
    "retry": "M3 8a5 5 0 1 0 1.5-3.5M3 3v3.2h3.2",
    "search": "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.3 10.3 14 14",
    "sun": (
        "M8 10.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6ZM8 1.5v1.6M8 12.9v1.6M1.5 8h1.6"
        "M12.9 8h1.6M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M12.6 3.4l-1.1 1.1"
        "M4.5 11.5l-1.1 1.1"
    ),
    "workers": "M3 3.5h10v4H3ZM3 9.5h10v4H3ZM5.3 5.5h.1M5.3 11.5h.1",
}
