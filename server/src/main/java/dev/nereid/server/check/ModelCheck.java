package dev.nereid.server.check;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Spelling;
import dev.nereid.plugin.BackendLease;
import dev.nereid.plugin.BackendRegistry;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.repository.config.ConfigCompletion;
import dev.nereid.repository.config.ConfigDiagnosis;
import dev.nereid.repository.config.ConfigProblem;
import dev.nereid.repository.config.ConfigValidation;
import dev.nereid.repository.config.ModelConfigReader;
import dev.nereid.repository.config.Placeholders;
import dev.nereid.repository.files.FileCopies;
import dev.nereid.repository.files.VersionFiles;
import dev.nereid.scheduler.Supervision;
import dev.nereid.server.check.CheckReport.ModelReport;
import dev.nereid.server.classification.LabelFiles;
import dev.nereid.server.instance.LoadWaits;
import dev.nereid.server.lifecycle.ModelLoadOptions;
import dev.nereid.server.lifecycle.ModelLoadWatch;
import dev.nereid.server.lifecycle.ModelPreparation;
import dev.nereid.server.lifecycle.PreparedModel;
import dev.nereid.server.lifecycle.SequencePlanReader;
import dev.nereid.server.lifecycle.VersionCompletion;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.server.warmup.WarmupSamples;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import inference.ModelVersionPolicy;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Checks models one after another, including their backends. It keeps the backends open until its close. Confined to
 * one thread; blocks.
 */
final class ModelCheck implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ModelCheck.class);
    private static final int MAX_WARNINGS = 100;

    private final BackendRegistry backends;
    private final FileCopies copies;
    private final ModelLoadOptions options;
    private final IneffectiveSettings ineffective;
    private final ModelPreparation preparation;
    private final Set<String> names;
    private final Map<String, BackendLease> leases = new LinkedHashMap<>();

    /** Warnings that the backend of the present model has logged. */
    private final Set<String> logged = new ConcurrentSkipListSet<>();

    ModelCheck(BackendRegistry backends, FileCopies copies, ServerOptions options, Set<String> names) {
        this.names = Set.copyOf(names);
        this.backends = backends;
        this.copies = copies;
        this.options = options.with(changed -> changed.warnings = (_, warning) -> logged.add(warning))
                .models();
        ineffective = IneffectiveSettings.on(options);
        ModelLoadWatch watch = new ModelLoadWatch(Supervision.NONE, System::nanoTime);
        preparation = new ModelPreparation(backends, options.models(), ineffective.rateLimited(), watch);
    }

    /** Checks a model; never throws because of it. */
    ModelReport check(ModelDirectory directory) {
        List<String> warnings = new ArrayList<>();
        ModelReport report =
                new ModelReport(directory.name(), directory.path(), List.of(), Optional.empty(), List.of(), List.of());
        try {
            Optional<Path> file = directory.configFile(options.configName());
            warnings.addAll(ignoredEntries(directory));
            if (file.isEmpty()) {
                return check(directory, report, ModelConfig.getDefaultInstance(), warnings);
            }
            List<ConfigProblem> problems = ConfigDiagnosis.ofFile(file.get());
            report = new ModelReport(directory.name(), file.get(), List.of(), Optional.empty(), problems, warnings);
            return report.isValid()
                    ? check(directory, report, ModelConfigReader.read(directory.root(), file.get()), warnings)
                    : report;
        } catch (InferenceException e) {
            return report.withError(e.publicMessage());
        } catch (RuntimeException e) {
            LOG.atError()
                    .addKeyValue("model", directory.name())
                    .setCause(e)
                    .log("check failed unexpectedly (model '{}')", directory.name());
            return report.withError("internal error: " + e);
        }
    }

    private ModelReport check(ModelDirectory directory, ModelReport start, ModelConfig written, List<String> warnings) {
        warnings.addAll(missingVersions(directory, written));
        warnings.addAll(Placeholders.of(written));
        PreparedModel prepared;
        try {
            prepared = preparation.prepare(directory);
        } catch (InferenceException e) {
            warnings.addAll(ineffective.of(written, written));
            return with(start, List.of(), Optional.empty(), warnings).withError(e.publicMessage());
        }
        try {
            return check(prepared, start, written, warnings);
        } finally {
            prepared.agents().loadFail(); // it ends here
        }
    }

    private ModelReport check(PreparedModel prepared, ModelReport start, ModelConfig written, List<String> warnings) {
        ModelConfig completed = prepared.config();
        List<String> errors = new ArrayList<>();
        logged.clear(); // what an earlier model's backend has logged since
        for (long version : prepared.versions()) {
            try {
                completed = complete(prepared, version);
                warnings.addAll(ConfigCompletion.replaced(prepared.config(), completed, version));
            } catch (BackendException e) {
                errors.add("version " + version + ": " + e.getMessage());
            } catch (InferenceException e) {
                errors.add("version " + version + ": " + e.publicMessage());
            }
        }
        warnings.addAll(ineffective.of(written, completed));
        logged.stream().limit(MAX_WARNINGS).forEach(warnings::add);
        ModelReport report = with(start, List.copyOf(prepared.versions()), Optional.of(completed), warnings);
        for (String error : errors) {
            report = report.withError(error);
        }
        return report;
    }

    private ModelConfig complete(PreparedModel prepared, long version) {
        if (prepared.config().hasEnsembleScheduling()) { // its steps are checked when it is loaded
            ConfigValidation.checkTensors(prepared.config());
            LabelFiles.read(prepared.directory().path(), prepared.config());
            return prepared.config();
        }
        return options.observer()
                .observe(
                        prepared.directory().name(),
                        prepared.config().getBackend(),
                        ModelLoadOptions.LoadObserver.Work.COMPLETION,
                        () -> completeByBackend(prepared, version));
    }

    private ModelConfig completeByBackend(PreparedModel prepared, long version) {
        BackendLease lease = lease(prepared.config().getBackend());
        ModelConfig completed;
        Set<String> missing = new ConcurrentSkipListSet<>();
        PreparedModel requiring = prepared.with(name -> {
            if (!names.contains(name)) {
                missing.add(name);
            }
            return true;
        });
        VersionFiles files = copies.of(prepared.directory());
        completed = VersionCompletion.complete(
                options, requiring, version, lease, files, Supervision.NONE, LoadWaits.PLAIN);
        if (!missing.isEmpty()) {
            String name = missing.iterator().next();
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "requires model '" + name + "', which is in no model repository." + Spelling.question(name, names));
        }
        Path directory = prepared.directory().path();
        LabelFiles.read(directory, completed);
        WarmupSamples.checkFiles(completed, directory);
        SequencePlanReader.checkFiles(completed, directory);
        return completed;
    }

    private BackendLease lease(String backend) {
        BackendLease lease = leases.get(backend);
        if (lease == null) {
            lease = backends.acquire(backend);
            leases.put(backend, lease);
        }
        return lease;
    }

    @Override
    public void close() {
        leases.values().forEach(BackendLease::close);
        leases.clear();
    }

    private static ModelReport with(
            ModelReport start, List<Long> versions, Optional<ModelConfig> config, List<String> warnings) {
        return new ModelReport(start.name(), start.file(), versions, config, start.errors(), warnings);
    }

    /** Lists entries of the model's directory that seem to have an effect and have none. */
    private static List<String> ignoredEntries(ModelDirectory directory) {
        List<String> ignored = new ArrayList<>();
        TreeSet<Long> versions = directory.versions();
        try (Stream<Path> entries = Files.list(directory.path())) {
            entries.sorted().limit(MAX_WARNINGS).forEach(entry -> {
                String name = entry.getFileName().toString();
                if (name.equals("config.pbtxt") && Files.isDirectory(entry)) {
                    ignored.add(name + " is ignored: it is a directory (expected: a file)");
                } else if (Files.isDirectory(entry) && isNumber(name) && !isVersion(name, versions)) {
                    ignored.add("directory " + name + " is ignored"
                            + " (expected: a version from 0 to 9223372036854775807 without leading zeros)");
                }
            });
        } catch (IOException e) {
            ignored.add("the directory cannot be listed: " + e.getMessage());
        }
        return ignored;
    }

    private static boolean isNumber(String name) {
        return name.chars().allMatch(c -> c >= '0' && c <= '9');
    }

    private static boolean isVersion(String name, Set<Long> versions) {
        return versions.stream().anyMatch(version -> version.toString().equals(name));
    }

    private static List<String> missingVersions(ModelDirectory directory, ModelConfig written) {
        ModelVersionPolicy policy = written.getVersionPolicy();
        TreeSet<Long> existing = directory.versions();
        return policy.getSpecific().getVersionsList().stream()
                .filter(version -> !existing.contains(version))
                .distinct()
                .limit(MAX_WARNINGS)
                .map(version -> "version " + version + " of version_policy.specific has no directory")
                .toList();
    }
}
