/**
 * The boundary between the server and the code of a plugin. It sets the context class loader, translates exceptions,
 * and passes responses of other models.
 *
 * <p>Starting points: {@link dev.nereid.plugin.boundary.PluginBoundary}, and {@link
 * dev.nereid.plugin.boundary.IsolatedModelClient}, the client of a model of a plugin.
 */
@NullMarked
package dev.nereid.plugin.boundary;

import org.jspecify.annotations.NullMarked;
