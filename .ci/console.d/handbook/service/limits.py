"""Limits of the warehouse: how many parcels a shift packs."""

PARCELS_PER_HOUR = 42


def parcels(hours: float, people: int) -> int:
    """Return how many parcels a shift packs, without the time of its breaks."""
    breaks = 0.75 if hours > 6 else 0.5
    return int((hours - breaks) * people * PARCELS_PER_HOUR)
