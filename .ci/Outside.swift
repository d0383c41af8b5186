import Relink
import RelinkTesting

print("Relink and RelinkTesting build from outside")
