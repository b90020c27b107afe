package dev.nereid.distribution.process;

/**
 * Version of the server, and of what runs it. Immutable.
 *
 * @param commit the commit that it was built from; {@code unknown} if the sources were no checkout
 * @param jdk version and vendor of the JVM
 * @param processors how many processors the process may use
 */
public record HostInfo(String version, String commit, String jdk, int processors) {}
