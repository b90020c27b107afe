/**
 * Remote model repositories: local copies of models that lie in a storage.
 *
 * <p>Starting points: {@link dev.nereid.server.storage.RemoteRepository}, which copies models, and
 * {@link dev.nereid.server.storage.LocalCopies}, which keeps complete copies apart from everything else.
 */
@NullMarked
package dev.nereid.server.storage;

import org.jspecify.annotations.NullMarked;
