/**
 * Remote model repositories: local copies of models that lie in a storage.
 *
 * <p>Starting points: {@link dev.nereid.repository.storage.RemoteRepository}, which copies models, and
 * {@link dev.nereid.repository.storage.LocalCopies}, which keeps complete copies apart from everything else.
 */
@NullMarked
package dev.nereid.repository.storage;

import org.jspecify.annotations.NullMarked;
