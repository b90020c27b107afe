package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.repository.ModelFingerprint;
import dev.nereid.repository.ModelLocation;
import dev.nereid.repository.ModelRepository;
import dev.nereid.repository.RepositoryRoot;
import dev.nereid.server.lifecycle.ModelPreparation;
import java.util.HashMap;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads the state of all models in the repository. Confined to one scan at a time; blocks. */
final class FingerprintScan {
    private static final Logger LOG = LoggerFactory.getLogger(FingerprintScan.class);

    private final ModelRepository repository;
    private final ModelPreparation preparation;

    /** The state of each model at the last scan. */
    private volatile Map<String, ModelFingerprint> last = Map.of();

    /** The reasons that are in the log already. */
    private volatile Map<String, String> reported = Map.of();

    FingerprintScan(ModelRepository repository, ModelPreparation preparation) {
        this.repository = repository;
        this.preparation = preparation;
    }

    /**
     * Reads the models. The models of a repository that cannot be listed keep their last state.
     *
     * @return the state of the files of each model, by key
     */
    Map<String, ModelFingerprint> read() {
        ModelRepository.Scan scan = repository.scan();
        report(scan.unreachable());
        Map<String, ModelFingerprint> present = new HashMap<>();
        scan.duplicates().forEach(name -> present.put(name, ModelFingerprint.AMBIGUOUS));
        for (ModelLocation model : scan.models()) {
            present.put(
                    model.key(),
                    switch (model) {
                        case ModelLocation.Local(ModelDirectory directory) ->
                            scan.unreachable().containsKey(model.repository())
                                    ? last.getOrDefault(model.key(), ModelFingerprint.UNSEEN)
                                    : fingerprint(directory);
                        case ModelLocation.Remote(RepositoryRoot _, String _, String text, String _) ->
                            ModelFingerprint.ofRemote(text);
                    });
        }
        last = Map.copyOf(present);
        return present;
    }

    /** Logs the repositories that cannot be listed, once until that changes. */
    private void report(Map<String, String> unreachable) {
        unreachable.forEach((location, reason) -> {
            if (!reason.equals(reported.get(location))) {
                LOG.atError().log("failed to poll model repository: {}", reason);
            }
        });
        reported = unreachable;
    }

    private ModelFingerprint fingerprint(ModelDirectory directory) {
        try {
            return ModelFingerprint.of(directory, preparation.configFile(directory));
        } catch (InferenceException e) {
            return ModelFingerprint.UNREADABLE; // its load says why
        }
    }
}
