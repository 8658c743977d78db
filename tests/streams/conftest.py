from tests.server.fixtures import engines, service, shared, url

__all__ = ["engines", "service", "shared", "url"]
