package dev.nereid.server.lifecycle;

/** Hooks around the close of a generation, called on the thread that closes it. May block. */
public interface GenerationHooks {
    /** Does nothing. */
    GenerationHooks NONE = new GenerationHooks() {};

    /** Called when the generation has no lease any more, before its scheduler completes the requests that it has. */
    default void beforeClose() {}

    /** Called when the generation is closed, or its close has failed. Frees the files of its load. */
    default void afterClose() {}
}
