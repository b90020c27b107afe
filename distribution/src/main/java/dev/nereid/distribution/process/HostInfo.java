package dev.nereid.distribution.process;

/**
 * Version of the server and number of processors. Immutable.
 *
 * @param version the version of the server
 * @param processors how many processors the process may use
 */
public record HostInfo(String version, int processors) {}
