"""What becomes of ProvisioningRequests: decisions, bookings, attempts that are rolled back, requests that have ended."""
