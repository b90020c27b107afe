package dev.nereid.server.lifecycle;

/** What a request finds for its model: a generation that serves it, or a model that is loaded on demand. */
public sealed interface Resolution permits Generation, OnDemandModel {}
