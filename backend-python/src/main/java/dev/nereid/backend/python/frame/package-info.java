/**
 * Frames between the server and the process of a Python model, as {@code PROTOCOL.md} describes them: their numbers, writing
 * and checked reading.
 *
 * <p>Starting points: {@link dev.nereid.backend.python.frame.FrameWriter} and {@link
 * dev.nereid.backend.python.frame.FrameReader}.
 */
@NullMarked
package dev.nereid.backend.python.frame;

import org.jspecify.annotations.NullMarked;
