/**
 * Model repositories and the life of the models in them: found, loaded, served, closed.
 *
 * <p>Starting points: {@link dev.nereid.server.repository.ModelRepository}, which reads the folders, and
 * {@link dev.nereid.server.lifecycle.ModelLifecycle}, which loads what is found and owns what is loaded.
 */
@NullMarked
package dev.nereid.server.repository;

import org.jspecify.annotations.NullMarked;
