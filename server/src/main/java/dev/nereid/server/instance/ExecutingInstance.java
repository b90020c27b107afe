package dev.nereid.server.instance;

/**
 * An instance that executes at this moment. Immutable.
 *
 * @param model the model's name
 * @param instance the instance's name
 */
public record ExecutingInstance(String model, long version, String instance) {}
