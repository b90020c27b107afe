package dev.nereid.server.lifecycle;

/** The target of a request: a generation, or a model that is loaded on demand. */
public sealed interface Resolution permits Generation, OnDemandModel {}
