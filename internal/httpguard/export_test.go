package httpguard

// ListenError is for tests, which may have the rights that a user lacks.
var ListenError = listenError
