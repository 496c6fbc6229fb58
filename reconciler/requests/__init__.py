"""The life of ProvisioningRequests: who answers them, which pods use them, what becomes of them, and the words for that."""
