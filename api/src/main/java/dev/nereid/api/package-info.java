/**
 * The port through which front ends and embedding programs use a server, and small helpers of several modules.
 *
 * <p>Starting points: {@link dev.nereid.api.InferenceServer}, which executes an {@link dev.nereid.api.InferRequest}
 * and responds through a {@link dev.nereid.api.ResponseObserver}, and its {@link dev.nereid.api.ModelCatalog}. The messages of the
 * network protocols are in the package {@code inference}, generated from this module's {@code .proto} files.
 */
@NullMarked
package dev.nereid.api;

import org.jspecify.annotations.NullMarked;
