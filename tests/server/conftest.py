from tests.server.fixtures import engines, http, service, shared, url

__all__ = ["engines", "http", "service", "shared", "url"]
