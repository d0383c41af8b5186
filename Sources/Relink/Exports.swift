@_exported public import RelinkCore
