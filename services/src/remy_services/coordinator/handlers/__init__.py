"""DesignService: its calls, by what they are about."""

from remy_services.coordinator.handlers.design_service import DesignService

__all__ = ["DesignService"]
