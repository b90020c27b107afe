/**
 * Loads, reloads and unloads whole models, at the start, by polling and on request.
 *
 * <p>Starting points: {@link dev.nereid.server.control.ModelLifecycle}, the entry for the server;
 * {@link dev.nereid.server.control.ModelLoader}, the load of one model; {@link dev.nereid.server.control.ControlTasks},
 * which runs one task at a time for each model. The life of a single version is in {@link dev.nereid.server.lifecycle}.
 */
@NullMarked
package dev.nereid.server.control;

import org.jspecify.annotations.NullMarked;
