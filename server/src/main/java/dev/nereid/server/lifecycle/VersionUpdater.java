package dev.nereid.server.lifecycle;

import dev.nereid.api.InferenceException;
import dev.nereid.plugin.BackendLease;
import dev.nereid.plugin.BackendRegistry;
import dev.nereid.scheduler.InstanceControl;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.server.instance.BackendInstance;
import dev.nereid.server.instance.InstanceFactory;
import dev.nereid.server.instance.InstancePlan;
import dev.nereid.server.instance.InstanceUpdate;
import dev.nereid.server.instance.Rollback;
import dev.nereid.server.warmup.RunningWarmups;
import dev.nereid.server.warmup.WarmupSamples;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import inference.ModelConfig;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Replaces instances of a serving model version. Immutable; blocks. Not to be used by two threads for one version at
 * a time.
 */
public final class VersionUpdater {
    private static final Logger LOG = LoggerFactory.getLogger(VersionUpdater.class);

    /** How long an update waits for the close of removed instances. */
    private static final Duration CLOSE_TIMEOUT = Duration.ofMinutes(1);

    private final BackendRegistry backends;
    private final VersionLoader loader;
    private final ModelLoadOptions options;
    private final RunningWarmups warmups;

    /**
     * Creates the updater of a server's versions.
     *
     * @param options how they are created
     * @param warmups knows the warm-ups in progress
     */
    public VersionUpdater(
            BackendRegistry backends, VersionLoader loader, ModelLoadOptions options, RunningWarmups warmups) {
        this.backends = backends;
        this.loader = loader;
        this.options = options;
        this.warmups = warmups;
    }

    /**
     * Replaces the instances of a served version by the configured ones. Creates the missing instances, has them warmed
     * up and serve, and then retires the instances that are no longer configured. Retired instances complete the
     * requests that they have. If a new one fails, all new ones are closed, and the old ones continue.
     *
     * @param prepared the model with its present configuration
     * @return the version as it is served from now on, in place of {@code served}
     * @throws BackendException if an instance cannot be created
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if the configuration is wrong, or if an instance
     *     fails its warm-up
     * @throws ReloadRequiredException if it differs in more than instances and versions, or if its instances cannot be
     *     replaced while it serves; nothing was changed
     * @throws InterruptedException if the thread is interrupted during the warm-up; as if that had failed
     */
    public ServedModel update(PreparedModel prepared, ServedModel served)
            throws InterruptedException, ReloadRequiredException {
        return update(prepared, served, false);
    }

    /**
     * Replaces the instances like {@link #update}, also where the loaded model does not suit their number: the log says so.
     *
     * @param prepared the model with its present configuration
     * @return the version as it is served from now on, in place of {@code served}
     * @throws BackendException as {@link #update}
     * @throws ReloadRequiredException as {@link #update}
     * @throws InterruptedException as {@link #update}
     */
    public ServedModel updateInPlace(PreparedModel prepared, ServedModel served)
            throws InterruptedException, ReloadRequiredException {
        return update(prepared, served, true);
    }

    private ServedModel update(PreparedModel prepared, ServedModel served, boolean isInPlace)
            throws InterruptedException, ReloadRequiredException {
        if (prepared.config().hasEnsembleScheduling()) {
            throw new ReloadRequiredException("it is an ensemble, which has no instances");
        }
        try (BackendLease lease = backends.acquire(prepared.config().getBackend())) {
            return update(prepared, served, lease, isInPlace);
        }
    }

    private ServedModel update(PreparedModel prepared, ServedModel served, BackendLease lease, boolean isInPlace)
            throws InterruptedException, ReloadRequiredException {
        Backend backend = lease.backend();
        ModelConfig config = loader.complete(prepared, served.version(), lease);
        if (!withoutInstances(config).equals(withoutInstances(served.config()))) {
            throw new ReloadRequiredException(
                    "its configuration differs in more than instance_group and version_policy");
        }
        List<InstancePlan> target = InstancePlan.of(config);
        VersionLoader.checkActive(config.getName(), target);
        List<InstancePlan> present =
                served.instances().stream().map(BackendInstance::plan).toList();
        InstanceUpdate update = InstanceUpdate.of(present, target);
        BackendTraits.Execution execution =
                model(served).execution().orElse(backend.traits().execution());
        if (!update.isEmpty() && execution == BackendTraits.Execution.DEVICE_BLOCKING) {
            throw new ReloadRequiredException("its instances share threads, since their executions block their device");
        }
        Optional<String> resource =
                loader.isRateLimited() ? InstanceUpdate.resourceChange(present, target) : Optional.empty();
        if (resource.isPresent()) {
            throw new ReloadRequiredException(resource.get());
        }
        if (!update.isEmpty() && !suits(served, target)) {
            String reason = "its backend has sized it, such as its threads, for " + present.size()
                    + " instances, and not for " + target.size();
            if (!isInPlace) {
                throw new ReloadRequiredException(reason);
            }
            LOG.atWarn()
                    .addKeyValue("model", served.config().getName())
                    .addKeyValue("version", served.version())
                    .addKeyValue("reason", reason)
                    .log(
                            "instances are updated, and what they share is as before (load the model again) (model '{}', version {}): {}",
                            served.config().getName(),
                            served.version(),
                            reason);
        }
        return served.with(config, change(prepared, served, config, target, update, backend.traits()));
    }

    /** Returns the backend's model: an ensemble is not updated. */
    private static Model model(ServedModel served) {
        return served.leased().orElseThrow().model();
    }

    /** Returns whether the loaded model suits other instances; {@code false} if the backend cannot say. */
    private static boolean suits(ServedModel served, List<InstancePlan> target) {
        try {
            return model(served).suits(target.stream().map(InstancePlan::device).toList());
        } catch (BackendException e) {
            return false;
        }
    }

    /**
     * Waits until the instances that an update has removed are closed, a minute at most. An instance with sequences ends with
     * them, and is not waited for.
     */
    public void awaitClosed(ServedModel before, ServedModel after) {
        List<Instance> removed = before.instances().stream()
                .filter(instance -> !instance.isPassive() && !after.instances().contains(instance))
                .map(BackendInstance::scheduled)
                .toList();
        boolean areClosed = removed.isEmpty()
                || before.scheduler()
                        .instances()
                        .map(instances -> warmups.awaitClosed(instances, removed, CLOSE_TIMEOUT))
                        .orElse(true);
        if (!areClosed) {
            LOG.atWarn()
                    .addKeyValue("model", before.config().getName())
                    .addKeyValue("version", before.version())
                    .log(
                            "removed instances are still in use: they are closed with the end of their requests (model '{}', version {})",
                            before.config().getName(),
                            before.version());
        }
    }

    private static ModelConfig withoutInstances(ModelConfig config) {
        return config.toBuilder().clearInstanceGroup().clearVersionPolicy().build();
    }

    private List<BackendInstance> change(
            PreparedModel prepared,
            ServedModel served,
            ModelConfig config,
            List<InstancePlan> target,
            InstanceUpdate update,
            BackendTraits traits)
            throws InterruptedException, ReloadRequiredException {
        List<InstancePlan> missing = new ArrayList<>();
        for (int i = 0; i < target.size(); i++) {
            if (update.sources().get(i) == InstanceUpdate.NEW) {
                missing.add(target.get(i));
            }
        }
        List<BackendInstance> removed =
                update.removed().stream().map(served.instances()::get).toList();
        List<BackendInstance> added;
        loader.checkStarts(prepared);
        try (Rollback rollback = new Rollback();
                WarmupSamples warmup = loader.warmup(
                        prepared, config, ModelSettingsReader.settings(config, served.version()), model(served))) {
            LeasedModel leased = served.leased().orElseThrow();
            added = new InstanceFactory(plan -> loader.newInstance(leased, plan), traits, options.instances())
                    .create(missing, rollback);
            loader.awaitStarted(added);
            exchange(served, added, removed, warmup.samples(), rollback);
            rollback.commit();
        }
        removed.stream().filter(BackendInstance::isPassive).forEach(BackendInstance::close);
        return arrange(served, update, added);
    }

    private void exchange(
            ServedModel served,
            List<BackendInstance> added,
            List<BackendInstance> removed,
            List<Warmup.Sample> warmup,
            Rollback rollback)
            throws InterruptedException, ReloadRequiredException {
        InstanceControl instances = instances(served);
        rollback.commit(); // from here on the scheduler closes the instances that run, also when their warm-up fails
        added.stream().filter(BackendInstance::isPassive).forEach(passive -> rollback.add(passive::close));
        warmups.replace(instances, active(added), active(removed), warmup);
    }

    /** Returns the instances that a scheduler runs. */
    private static List<Instance> active(List<BackendInstance> all) {
        return all.stream()
                .filter(instance -> !instance.isPassive())
                .map(BackendInstance::scheduled)
                .toList();
    }

    private static InstanceControl instances(ServedModel served) throws ReloadRequiredException {
        return served.scheduler()
                .instances()
                .orElseThrow(() -> new ReloadRequiredException("it has no instances of its own"));
    }

    /** Puts the instances in the order of the configuration. */
    private static List<BackendInstance> arrange(
            ServedModel served, InstanceUpdate update, List<BackendInstance> added) {
        List<BackendInstance> all = new ArrayList<>();
        int next = 0;
        for (int source : update.sources()) {
            all.add(
                    source == InstanceUpdate.NEW
                            ? added.get(next++)
                            : served.instances().get(source));
        }
        return all;
    }
}
