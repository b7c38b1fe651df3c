"""The plots of a replay."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from judgetree.evaluation.replay.replay_plots import replay_plots


def test_policies_with_the_same_figures_share_a_line_that_names_both() -> None:
    rows = [
        {
            "budget": budget,
            "policy": policy,
            "calls": budget - 1.0,
            "complete": mean,
            "low": mean - 0.1,
            "high": mean + 0.1,
        }
        for policy, means in {"breadth": (0.2, 0.5), "wider": (0.2, 0.5), "mcts": (0.2, 0.6)}.items()
        for budget, mean in zip((8, 16), means, strict=True)
    ]
    (plot,) = replay_plots(pd.DataFrame(rows))
    figure = Figure()
    plot.draw(figure)
    assert figure.axes[0].get_legend_handles_labels()[1] == ["breadth = wider", "mcts"]
    assert "wider within 16 calls: 50.0" in plot.alt
