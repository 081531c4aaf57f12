"""The supervisor: several engine processes on one device, behind one address (`evidence serve`)."""
