package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.config.Placeholders;
import dev.nereid.server.ensemble.EnsembleLoader;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.LiveGenerations;
import dev.nereid.server.lifecycle.ModelLoadWatch;
import dev.nereid.server.lifecycle.PreparedModel;
import dev.nereid.server.lifecycle.ServedModel;
import dev.nereid.server.lifecycle.VersionLoader;
import dev.nereid.server.lifecycle.VersionState;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Loads single versions, as often as it takes, and reports each load. Immutable; blocks. */
final class LoadAttempts {
    private static final Logger LOG = LoggerFactory.getLogger(LoadAttempts.class);

    private final VersionLoader loader;
    private final EnsembleLoader ensembles;
    private final LiveGenerations live;
    private final ModelLoadWatch watch;
    private final LoadFailures failures;
    private final LongSupplier nanoTime;
    private final int retries;

    LoadAttempts(
            VersionLoader loader,
            EnsembleLoader ensembles,
            LiveGenerations live,
            ModelLoadWatch watch,
            LoadFailures failures,
            LongSupplier nanoTime,
            int retries) {
        this.loader = loader;
        this.ensembles = ensembles;
        this.live = live;
        this.watch = watch;
        this.failures = failures;
        this.nanoTime = nanoTime;
        this.retries = retries;
    }

    /**
     * Loads a version.
     *
     * @param hooks called once if the load succeeds; returns the hooks around the close of the generation
     * @return ready with a generation that is in no catalog yet, or unavailable
     */
    VersionState load(PreparedModel prepared, long version, long fileBytes, Supplier<Generation.Hooks> hooks) {
        VersionState state = tryLoad(prepared, version, fileBytes, hooks);
        for (int retry = 0; retry < retries && state instanceof VersionState.Unavailable; retry++) {
            state = tryLoad(prepared, version, fileBytes, hooks);
        }
        return state;
    }

    private VersionState tryLoad(
            PreparedModel prepared, long version, long fileBytes, Supplier<Generation.Hooks> hooks) {
        String name = prepared.directory().name();
        long started = nanoTime.getAsLong();
        LOG.info("loading: {}:{}", name, version);
        InferenceException failure;
        try {
            ServedModel served;
            try (ModelLoadWatch.Step _ = watch.begin(name, OptionalLong.of(version), "load")) {
                served = prepared.config().hasEnsembleScheduling()
                        ? ensembles.load(prepared, version)
                        : loader.load(prepared, version);
            }
            LOG.atInfo()
                    .addKeyValue("model", name)
                    .addKeyValue("version", version)
                    .addKeyValue("backend", prepared.config().getBackend())
                    .addKeyValue("elapsedMillis", TimeUnit.NANOSECONDS.toMillis(nanoTime.getAsLong() - started))
                    .log("successfully loaded '{}' version {}", name, version);
            live.events().loaded(name, nanoTime.getAsLong() - started);
            return new VersionState.Ready(live.begin(prepared.directory().key(), served, fileBytes, hooks.get()));
        } catch (RuntimeException | VirtualMachineError e) {
            failure = failures.of(prepared.directory(), prepared.config(), e);
        }
        String reason = failure.publicMessage() + Placeholders.hint(prepared.config());
        live.events().failed(name);
        VersionState.Unavailable state =
                VersionState.Unavailable.of(failure.code(), reason).counted(isExisting(prepared));
        LOG.atError()
                .addKeyValue("model", name)
                .addKeyValue("version", version)
                .log("failed to load '{}' version {}: {}", name, version, state.reason());
        return state;
    }

    /** Returns whether there is a version that failed: not of an ensemble that does not fit its steps. */
    private boolean isExisting(PreparedModel prepared) {
        return !prepared.config().hasEnsembleScheduling() || ensembles.isFitting(prepared);
    }
}
