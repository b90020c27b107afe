package dev.nereid.backend.python.report;

import static java.util.Objects.requireNonNull;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import java.lang.System.Logger.Level;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Warns of what a model does that has no effect, once for each name. One for a model; safe for use by any thread. */
public final class Notices {
    /** The number of names that are warned of. A model may make up any number. */
    static final int MAX_NAMES = 1000;

    private static final int UNKNOWN_OUTPUT = 1;

    /** The number of characters of a name that are written. */
    private static final int MAX_LENGTH = 200;

    private final System.Logger log;
    private final Set<String> outputs = ConcurrentHashMap.newKeySet();

    public Notices(System.Logger log) {
        this.log = requireNonNull(log, "log");
    }

    /** Handles NOTICE of any process of the model, if of a known kind. Throws {@link FrameException} if malformed. */
    public void onNotice(FrameReader frame) {
        if (frame.id() != UNKNOWN_OUTPUT) {
            return;
        }
        String name = ReportTexts.quoted(frame.text("output of a notice"), MAX_LENGTH);
        if (outputs.size() < MAX_NAMES && outputs.add(name)) {
            log.log(
                    Level.WARNING,
                    "output " + name + " is not in the configuration of the model: no client receives it (expected: one"
                            + " of the configured outputs)");
        }
    }
}
