"""Read the snow stake and write one line a day."""

# The stake stands forty metres north of the flagpole; a reading above 310 centimetres closes the ski route.
LIMIT_CM = 310


def is_closed(depth_cm: int) -> bool:
    """Say whether the ski route is closed."""
    return depth_cm > LIMIT_CM
