package dev.nereid.distribution;

/**
 * Version of the server and number of processors. Immutable.
 *
 * @param version the version of the server
 * @param processors how many processors the process may use
 */
record HostInfo(String version, int processors) {}
