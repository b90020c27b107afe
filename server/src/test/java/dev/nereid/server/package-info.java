/**
 * Tests of whole servers, with plugins that are compiled by the tests.
 *
 * <p>Starting points: {@link dev.nereid.server.TestPlugins} and {@link dev.nereid.server.RecordingObserver}.
 */
@NullMarked
package dev.nereid.server;

import org.jspecify.annotations.NullMarked;
