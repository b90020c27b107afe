package dev.nereid.repository;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * The state of a model's files, compared to find changes since its load. Immutable.
 *
 * @param others the other files, such as labels
 * @param config the file that configures the model
 */
public record ModelFingerprint(Map<Long, TreeStamp> versions, Map<String, TreeStamp> others, TreeStamp config) {
    /** Stands for a model that lies in several repositories. */
    public static final ModelFingerprint AMBIGUOUS = new ModelFingerprint(Map.of(), Map.of(), new TreeStamp(-1, 0, 0));

    /** The fingerprint of a model with unreadable files. */
    public static final ModelFingerprint UNREADABLE = new ModelFingerprint(Map.of(), Map.of(), new TreeStamp(-2, 0, 0));

    /** The fingerprint of a model that was loaded from files that no scan has read. */
    public static final ModelFingerprint UNSEEN = new ModelFingerprint(Map.of(), Map.of(), new TreeStamp(-3, 0, 0));

    public ModelFingerprint {
        versions = Map.copyOf(versions);
        others = Map.copyOf(others);
    }

    /**
     * Returns the fingerprint of a model that lies elsewhere.
     *
     * @param text a text that differs for different files
     * @return the fingerprint, equal only to fingerprints of the same text
     */
    public static ModelFingerprint ofRemote(String text) {
        return new ModelFingerprint(Map.of(), Map.of(text, TreeStamp.NONE), new TreeStamp(-3, 0, 0));
    }

    /**
     * Reads the fingerprint of a model. Blocks.
     *
     * @param configFile the file that configures it; empty if there is none
     * @throws dev.nereid.api.InferenceException if the files cannot be read
     */
    public static ModelFingerprint of(ModelDirectory directory, Optional<Path> configFile) {
        Map<Long, TreeStamp> versions = new TreeMap<>();
        for (long version : directory.versions()) {
            versions.put(version, stamp(directory, directory.versionDirectory(version), configFile));
        }
        Map<String, TreeStamp> others = new TreeMap<>();
        for (Path entry : directory.others()) {
            if (!configFile.equals(Optional.of(entry))) {
                others.put(String.valueOf(entry.getFileName()), stamp(directory, entry, configFile));
            }
        }
        TreeStamp config = configFile
                .map(file -> TreeStamp.of(directory.root(), file, _ -> false))
                .orElse(TreeStamp.NONE);
        return new ModelFingerprint(versions, others, config);
    }

    /**
     * Computes the fingerprint of a copy from the objects that it was made of. Each part has its own, whatever the time
     * of its copy.
     *
     * @param configFile the file that configures the model; empty if there is none
     */
    static ModelFingerprint ofCopy(ModelDirectory directory, Optional<Path> configFile, List<CopiedFile> files) {
        String config = configFile
                .map(file -> directory.path().relativize(file).toString())
                .orElse("");
        Map<String, List<CopiedFile>> parts = new TreeMap<>();
        List<CopiedFile> configured = new ArrayList<>();
        for (CopiedFile file : files) {
            List<CopiedFile> part = file.path().equals(config)
                    ? configured
                    : parts.computeIfAbsent(file.path().split("/", 2)[0], _ -> new ArrayList<>());
            part.add(file);
        }
        Map<Long, TreeStamp> versions = new TreeMap<>();
        for (long version : directory.versions()) {
            List<CopiedFile> part = parts.remove(Long.toString(version));
            versions.put(version, TreeStamp.of(part == null ? List.of() : part));
        }
        Map<String, TreeStamp> others = new TreeMap<>();
        parts.forEach((name, part) -> others.put(name, TreeStamp.of(part)));
        return new ModelFingerprint(versions, others, TreeStamp.of(configured));
    }

    private static TreeStamp stamp(ModelDirectory directory, Path path, Optional<Path> configFile) {
        return TreeStamp.of(directory.root(), path, entry -> configFile.equals(Optional.of(entry)));
    }

    /**
     * Returns whether a version was loaded from the same files.
     *
     * @param earlier the fingerprint at its load
     * @return {@code true} if its files and the files that all versions share have not changed, the configuration aside
     */
    public boolean hasSameFiles(long version, ModelFingerprint earlier) {
        return versions.containsKey(version)
                && versions.get(version).equals(earlier.versions.get(version))
                && others.equals(earlier.others);
    }
}
