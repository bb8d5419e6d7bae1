"""Whether the texts of a chart can be read: none lies on another, none reaches out of the picture."""

import itertools

from matplotlib.text import Text


def overlaps(figure):
    """Pairs of texts of a figure that lie on each other, and texts that reach out of it."""
    figure.canvas.draw()
    unseen = {label for axes in figure.axes for at, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True) if at > axes.get_xlim()[1]}
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text() and text not in unseen]
    boxes = {f"{text.get_text()} at {text.get_position()}": text.get_window_extent() for text in texts}
    outside = [name for name, box in boxes.items() if box.x0 < 0 or box.y0 < 0 or box.x1 > figure.bbox.x1 or box.y1 > figure.bbox.y1]
    return outside + [(a, b) for (a, one), (b, other) in itertools.combinations(boxes.items(), 2) if one.overlaps(other)]
