/**
 * The boundary between the server and the code of a plugin: its context class loader, its exceptions, and what comes to it
 * from other models.
 *
 * <p>Starting points: {@link dev.nereid.server.plugin.boundary.PluginBoundary}, and {@link
 * dev.nereid.server.plugin.boundary.IsolatedModelClient}, the client of a model of a plugin.
 */
@NullMarked
package dev.nereid.server.plugin.boundary;

import org.jspecify.annotations.NullMarked;
