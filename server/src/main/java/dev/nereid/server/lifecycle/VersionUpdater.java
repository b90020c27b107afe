package dev.nereid.server.lifecycle;

import dev.nereid.api.InferenceException;
import dev.nereid.scheduler.InstanceControl;
import dev.nereid.scheduler.instance.InstanceSlot;
import dev.nereid.scheduler.instance.WarmupSample;
import dev.nereid.server.config.ModelSettingsReader;
import dev.nereid.server.instance.InstanceFactory;
import dev.nereid.server.instance.InstancePlan;
import dev.nereid.server.instance.InstanceUpdate;
import dev.nereid.server.instance.LoadedInstance;
import dev.nereid.server.instance.ResourceKinds;
import dev.nereid.server.instance.Rollback;
import dev.nereid.server.plugin.BackendRegistry;
import dev.nereid.server.warmup.RunningWarmups;
import dev.nereid.server.warmup.WarmupSamples;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelInstance;
import inference.ModelConfig;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Replaces instances of a serving model version. Immutable; blocks. Not to be used by two threads for one version at
 * a time.
 */
final class VersionUpdater {
    private final BackendRegistry backends;
    private final VersionLoader loader;
    private final ModelLoadOptions options;
    private final RunningWarmups warmups;

    VersionUpdater(BackendRegistry backends, VersionLoader loader, ModelLoadOptions options, RunningWarmups warmups) {
        this.backends = backends;
        this.loader = loader;
        this.options = options;
        this.warmups = warmups;
    }

    /**
     * Replaces the instances of a served version by the configured ones. Creates those that are missing, has them
     * warmed up and serve, and then retires those that are no longer configured: they complete the requests that they
     * have. If a new one fails, all new ones are closed, and the old ones continue.
     *
     * @param prepared the model with its present configuration
     * @param served the version as it is served
     * @return the version as it is served from now on, in place of {@code served}
     * @throws BackendException if an instance cannot be created
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if the configuration is wrong, if it differs in
     *     more than instances and versions, so that the model has to be loaded again, or if an instance fails its
     *     warm-up
     * @throws InterruptedException if the thread is interrupted during the warm-up; as if that had failed
     */
    ServedModel update(PreparedModel prepared, ServedModel served) throws BackendException, InterruptedException {
        Backend backend = backends.backend(prepared.config().getBackend());
        ModelConfig config = loader.complete(prepared, served.version(), backend);
        if (!withoutInstances(config).equals(withoutInstances(served.config()))) {
            throw reload(config.getName(), "its configuration differs in more than instance_group and version_policy");
        }
        List<InstancePlan> target = InstancePlan.of(config);
        VersionLoader.checkActive(config.getName(), target);
        List<InstancePlan> present =
                served.instances().stream().map(LoadedInstance::plan).toList();
        InstanceUpdate update = InstanceUpdate.of(present, target);
        BackendTraits.Execution execution =
                served.model().execution().orElse(backend.traits().execution());
        if (!update.isEmpty() && execution == BackendTraits.Execution.DEVICE_BLOCKING) {
            throw reload(config.getName(), "its instances share threads, since their executions block their device");
        }
        Optional<String> resource = loader.isRateLimited() ? ResourceKinds.change(present, target) : Optional.empty();
        if (resource.isPresent()) {
            throw reload(config.getName(), resource.get());
        }
        return served.with(config, change(prepared, served, config, target, update, backend.traits()));
    }

    private static ModelConfig withoutInstances(ModelConfig config) {
        return config.toBuilder().clearInstanceGroup().clearVersionPolicy().build();
    }

    static InferenceException reload(String model, String reason) {
        return new InferenceException(
                ErrorCode.INVALID_ARGUMENT,
                "model '" + model + "' cannot be updated while it serves: " + reason
                        + " (expected: a change of its instances alone; load the model again)");
    }

    private List<LoadedInstance> change(
            PreparedModel prepared,
            ServedModel served,
            ModelConfig config,
            List<InstancePlan> target,
            InstanceUpdate update,
            BackendTraits traits)
            throws BackendException, InterruptedException {
        List<InstancePlan> missing = new ArrayList<>();
        for (int i = 0; i < target.size(); i++) {
            if (update.sources().get(i) == InstanceUpdate.NEW) {
                missing.add(target.get(i));
            }
        }
        List<LoadedInstance> removed =
                update.removed().stream().map(served.instances()::get).toList();
        List<LoadedInstance> added = new ArrayList<>();
        try (Rollback rollback = new Rollback();
                WarmupSamples warmup =
                        loader.warmup(prepared, config, ModelSettingsReader.settings(config, served.version()))) {
            List<ModelInstance> created = new InstanceFactory(
                            plan -> loader.newInstance(served.model(), plan), traits, options.instances())
                    .create(missing, rollback);
            for (int i = 0; i < missing.size(); i++) {
                added.add(new LoadedInstance(missing.get(i), created.get(i)));
            }
            exchange(served, added, removed, warmup.samples(), rollback);
            rollback.commit();
        }
        removed.stream()
                .filter(LoadedInstance::isPassive)
                .forEach(passive -> passive.instance().close());
        return arrange(served, update, added);
    }

    private void exchange(
            ServedModel served,
            List<LoadedInstance> added,
            List<LoadedInstance> removed,
            List<WarmupSample> warmup,
            Rollback rollback)
            throws InterruptedException {
        rollback.commit(); // from here on the scheduler closes the instances that run, also when their warm-up fails
        added.stream().filter(LoadedInstance::isPassive).forEach(passive -> rollback.add(passive.instance()::close));
        List<InstanceSlot> slots = added.stream()
                .filter(one -> !one.isPassive())
                .map(one -> one.slot(options.instances().hostPolicies()))
                .toList();
        List<ModelInstance> old = removed.stream()
                .filter(one -> !one.isPassive())
                .map(LoadedInstance::instance)
                .toList();
        warmups.replace(instances(served), slots, old, warmup);
    }

    private static InstanceControl instances(ServedModel served) {
        return served.scheduler()
                .instances()
                .orElseThrow(() -> reload(served.config().getName(), "it has no instances of its own"));
    }

    /** Puts the instances in the order of the configuration. */
    private static List<LoadedInstance> arrange(ServedModel served, InstanceUpdate update, List<LoadedInstance> added) {
        List<LoadedInstance> all = new ArrayList<>();
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
