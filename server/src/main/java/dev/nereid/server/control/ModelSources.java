package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.Spelling;
import dev.nereid.repository.ModelCopy;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.repository.ModelFingerprint;
import dev.nereid.repository.ModelKey;
import dev.nereid.repository.ModelLocation;
import dev.nereid.repository.ModelRepository;
import dev.nereid.repository.config.ModelConfigJsonReader;
import dev.nereid.repository.config.ModelConfigReader;
import dev.nereid.server.control.ModelSource.ModelFiles;
import dev.nereid.server.lifecycle.ModelPreparation;
import dev.nereid.server.lifecycle.VersionState;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds the directories of models, and the configurations and files that clients send. Safe for use by any thread, one
 * at a time for each model; blocks.
 */
final class ModelSources {
    private static final Logger LOG = LoggerFactory.getLogger(ModelSources.class);

    /** The reason of a model that lies in several repositories. */
    static final String DUPLICATE = "model appears in two or more repositories";

    private final ModelRepository repository;
    private final ModelPreparation preparation;
    private final OverrideWriter writer;

    /** The configurations of clients, which stay until the files of their models change, by model. */
    private final ConcurrentHashMap<String, ModelSource> overrides = new ConcurrentHashMap<>();

    ModelSources(ModelRepository repository, ModelPreparation preparation, OverrideWriter writer) {
        this.repository = repository;
        this.preparation = preparation;
        this.writer = writer;
    }

    /**
     * Returns the keys of the models with a name that lie in the repository.
     *
     * @throws InferenceException if there is none, and a part of the repository cannot be read
     */
    Set<String> keys(String name) {
        Set<String> keys = new TreeSet<>();
        repository.find(name).forEach(model -> keys.add(model.key()));
        return keys;
    }

    /**
     * Returns the keys of the models that a model needs. The same namespace is searched first, then all.
     *
     * @return the keys; empty for a model that needs no others
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if one is in several other namespaces, or in none
     */
    Set<String> needed(ModelSource source) {
        Set<String> keys = new TreeSet<>();
        Set<String> unknown = new TreeSet<>();
        for (String name : preparation.needed(source.directory(), source.config())) {
            Optional<String> key = key(ModelKey.namespace(source.key()), name);
            (key.isPresent() ? keys : unknown).add(key.orElse(name));
        }
        if (!unknown.isEmpty()) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "ensemble " + source.directory().name() + " contains models that are not available or ambiguous: "
                            + String.join(", ", unknown));
        }
        return keys;
    }

    /**
     * Finds the model that another one names, in the same namespace first, then in all.
     *
     * @param namespace the namespace of the other one; empty without namespaces
     * @return its key; without namespaces also if there is no such model. Empty if it is in several other namespaces, or in
     *     none
     */
    Optional<String> key(String namespace, String name) {
        if (namespace.isEmpty()) {
            return Optional.of(name);
        }
        String own = ModelKey.of(namespace, name);
        if (isPresent(own)) {
            return Optional.of(own);
        }
        Set<String> found = new TreeSet<>(keys(name));
        return found.size() == 1 ? Optional.of(found.iterator().next()) : Optional.empty();
    }

    /** Returns the end of an error text about a model that is not in the repository, with similar names. */
    String expected(String model) {
        String name = ModelKey.name(model);
        List<String> others;
        try {
            others = repository.scanLocal().models().stream()
                    .map(ModelLocation::name)
                    .toList();
        } catch (InferenceException e) { // it was just read: the error says enough
            others = List.of();
        }
        return " (found no directory '" + name + "' in it)." + Spelling.question(name, others);
    }

    /** Returns whether a model lies in the repository, once or more, as far as the repository can be read. */
    boolean isPresent(String model) {
        try {
            return !repository.find(model).isEmpty();
        } catch (InferenceException e) {
            LOG.atWarn()
                    .addKeyValue("model", ModelKey.name(model))
                    .log("failed to poll model repository: {} (model '{}')", e.publicMessage(), ModelKey.name(model));
            return true;
        }
    }

    /**
     * Finds a model in the repository, with the configuration that a client gave with an earlier load, unless its files
     * have changed since.
     *
     * @throws InferenceException {@link ErrorCode#NOT_FOUND} if there is none, {@link ErrorCode#INVALID_ARGUMENT} if
     *     there are several, or if its files cannot be read
     */
    ModelSource find(String model) {
        ModelSource found = inRepository(model);
        ModelSource retained = overrides.get(model);
        return retained != null
                        && retained.files().equals(found.files())
                        && retained.holder().origin().equals(found.holder().origin())
                ? found.with(retained.config())
                : found;
    }

    private ModelSource inRepository(String model) {
        List<ModelLocation> found = repository.find(model);
        if (found.isEmpty()) {
            throw new InferenceException(ErrorCode.NOT_FOUND, pollFailed(model));
        }
        if (found.size() > 1) {
            throw new InferenceException(ErrorCode.INVALID_ARGUMENT, duplicate(model));
        }
        ModelLocation location = found.getFirst();
        ModelCopy copy = fetch(location);
        ModelFiles files = new ModelFiles(copy.directory(), location.repository(), copy::close);
        return of(files, copy::state, Optional.empty(), false);
    }

    private static String duplicate(String model) {
        return pollFailed(model) + ": " + DUPLICATE;
    }

    /** Returns the state of a model that could not be found: the same at the start and afterwards. */
    static VersionState.Unavailable unavailable(String model, InferenceException failure) {
        return failure.publicMessage().equals(duplicate(model))
                ? new VersionState.Unavailable(DUPLICATE, true)
                : VersionState.Unavailable.of(failure.code(), failure.publicMessage());
    }

    /** Returns the text of a failure for the log: that for clients is the reference server's, and does not say why. */
    static String logged(String model, InferenceException failure) {
        String text = failure.publicMessage();
        return text.equals(pollFailed(model)) ? text + ": model not found in any model repository" : text;
    }

    private static ModelCopy fetch(ModelLocation location) {
        try {
            return location.fetch();
        } catch (InferenceException e) {
            throw new InferenceException(e.code(), pollFailed(location.name()) + ": " + e.publicMessage());
        }
    }

    /**
     * Finds a model with the configuration and the files that a client gives. With files, the model need not be in the
     * repository.
     *
     * @param model the model's key
     * @return the configuration and files to be loaded, in use by the caller
     * @throws InferenceException as {@link #find}, or if the configuration or a file is refused
     */
    ModelSource find(String model, ModelControl.Load load) {
        if (load.config().isEmpty()) {
            throw InferenceException.clientError(
                    pollFailed(model) + ": Load parameter 'config' must be specified for model file override");
        }
        Optional<ModelConfigReader.Written> config =
                Optional.of(config(model, load.config().get()));
        if (load.files().isEmpty()) {
            return inRepository(model).with(config);
        }
        ModelFiles files = writer.write(model, load.files());
        return of(files, file -> ModelFingerprint.of(files.directory(), file), config, true);
    }

    private static ModelConfigReader.Written config(String model, String json) {
        try {
            return ModelConfigJsonReader.readWritten(json);
        } catch (InferenceException e) {
            throw InferenceException.clientError(pollFailed(model) + ": " + e.publicMessage());
        }
    }

    /** Reads the state of files. Ends the use of the files if that fails. */
    private ModelSource of(
            ModelFiles holder,
            Function<Optional<Path>, ModelFingerprint> state,
            Optional<ModelConfigReader.Written> config,
            boolean isOverridden) {
        boolean isRead = false;
        try {
            ModelDirectory directory = holder.directory();
            directory.checkContained();
            ModelFingerprint files = state.apply(preparation.configFile(directory));
            isRead = true;
            return new ModelSource(config, files, holder, isOverridden);
        } finally {
            if (!isRead) {
                holder.release();
            }
        }
    }

    /**
     * Records that a model was loaded. Its configuration stays for later loads if a client gave it, and goes with
     * files that a client gave.
     */
    void loaded(ModelSource source) {
        String model = source.key();
        if (source.config().isPresent() && !source.isOverridden()) {
            overrides.put(model, source);
        } else {
            overrides.remove(model);
        }
    }

    /** Deletes the local copies of other models, unless they are in use. */
    void retain(Set<String> models) {
        repository.retain(models);
    }

    /** Forgets the configuration that a client gave for a model. */
    void forget(String model) {
        overrides.remove(model);
    }

    private static String pollFailed(String model) {
        return "failed to load '" + ModelKey.name(model) + "', failed to poll from model repository";
    }
}
