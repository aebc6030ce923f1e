"""A server of the official library for Python, whose tools code under ``isolane mcp`` imports."""

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("a-shop")


@server.tool()
def list_orders(customer: str, least: float = 0) -> list[dict[str, float]]:
    """Lists the orders of a customer."""
    assert customer == "ada"
    orders = [{"id": 1, "total": 20}, {"id": 2, "total": 5}]
    return [order for order in orders if order["total"] >= least]


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def cancel_order(id: int) -> str:
    """Cancels an order."""
    return f"canceled {id}"


server.run()
