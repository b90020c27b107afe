package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.server.lifecycle.ModelPreparation;
import dev.nereid.server.repository.ModelDirectory;
import dev.nereid.server.repository.ModelFingerprint;
import dev.nereid.server.repository.ModelLocation;
import dev.nereid.server.repository.ModelRepository;
import dev.nereid.server.repository.RepositoryRoot;
import dev.nereid.server.repository.RepositoryScan;
import java.util.HashMap;
import java.util.Map;

/** Reads the state of all models in the repository. Immutable; blocks. */
final class RepositoryLook {
    private final ModelRepository repository;
    private final ModelPreparation preparation;

    RepositoryLook(ModelRepository repository, ModelPreparation preparation) {
        this.repository = repository;
        this.preparation = preparation;
    }

    /**
     * Reads the models.
     *
     * @return the state of the files of each model, by key
     * @throws InferenceException if the repository cannot be read
     */
    Map<String, ModelFingerprint> read() {
        RepositoryScan scan = repository.scan();
        Map<String, ModelFingerprint> present = new HashMap<>();
        scan.duplicates().forEach(name -> present.put(name, ModelFingerprint.AMBIGUOUS));
        for (ModelLocation model : scan.models()) {
            present.put(
                    model.key(),
                    switch (model) {
                        case ModelLocation.Local(ModelDirectory directory) -> fingerprint(directory);
                        case ModelLocation.Remote(RepositoryRoot _, String _, String text, String _) ->
                            ModelFingerprint.ofRemote(text);
                    });
        }
        return present;
    }

    private ModelFingerprint fingerprint(ModelDirectory directory) {
        try {
            return ModelFingerprint.of(directory, preparation.configFile(directory));
        } catch (InferenceException e) {
            return ModelFingerprint.UNREADABLE; // its load says why
        }
    }
}
