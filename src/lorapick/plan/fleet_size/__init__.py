"""How many pods and slots a demand needs: searched with the simulator, told as a report."""
