internal import Relink
