/**
 * The jars of plugins on disk: their checks, their private copies and the loaders of their classes.
 *
 * <p>Starting points: {@link dev.nereid.server.plugin.jar.PluginDirectory}, which finds them, and
 * {@link dev.nereid.server.plugin.jar.JarCopies}.
 */
@NullMarked
package dev.nereid.server.plugin.jar;

import org.jspecify.annotations.NullMarked;
