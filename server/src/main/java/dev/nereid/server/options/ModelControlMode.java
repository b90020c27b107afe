package dev.nereid.server.options;

/** Modes that decide when the models of a repository are loaded and unloaded. */
public enum ModelControlMode {
    /** All at the start; later changes of the repository have no effect. */
    NONE,
    /** All at the start, and then as the repository changes. */
    POLL,
    /** Named models at the start, and then models that clients request. */
    EXPLICIT,
    /** Each with its first request; idle ones are unloaded when memory is needed. */
    DEMAND
}
