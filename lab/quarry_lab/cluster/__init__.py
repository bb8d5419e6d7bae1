"""What clusters of quarry_cluster cost: clients that know what must be there, and measurements with them."""
