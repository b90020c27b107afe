package dev.nereid.plugin;

import dev.nereid.api.BestEffort;
import java.text.MessageFormat;
import java.util.MissingResourceException;
import java.util.ResourceBundle;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.slf4j.spi.LoggingEventBuilder;

/** Logger of a backend, model, cache or storage that writes to the server's log. Immutable. */
public final class PluginLogger implements System.Logger {
    private final String name;
    private final Logger log;
    private final Consumer<String> warnings;

    public PluginLogger(String backend) {
        this("nereid.backend.", backend, "");
    }

    private PluginLogger(String prefix, String plugin, String suffix) {
        this(prefix + plugin + suffix, _ -> {});
    }

    private PluginLogger(String name, Consumer<String> warnings) {
        this.name = name;
        this.log = LoggerFactory.getLogger(name);
        this.warnings = warnings;
    }

    /** Creates a logger for a repository agent. */
    public static PluginLogger ofAgent(String agent, String model) {
        return new PluginLogger("nereid.agent.", agent, "." + model);
    }

    static PluginLogger ofCache(String cache) {
        return new PluginLogger("nereid.cache.", cache, "");
    }

    static PluginLogger ofStorage(String scheme) {
        return new PluginLogger("nereid.storage.", scheme, "");
    }

    /** Creates a logger for one model. */
    public PluginLogger(String backend, String model) {
        this("nereid.backend.", backend, "." + model);
    }

    /**
     * Returns the same logger with a receiver of warnings.
     *
     * @param receiver receives the text of each line of the level WARNING, also while the log has a higher level; called by
     *     any thread
     */
    public PluginLogger withWarnings(Consumer<String> receiver) {
        return new PluginLogger(name, receiver);
    }

    @Override
    public String getName() {
        return name;
    }

    @Override
    public boolean isLoggable(Level level) {
        return switch (level) {
            case ALL, TRACE -> log.isTraceEnabled();
            case DEBUG -> log.isDebugEnabled();
            case INFO -> log.isInfoEnabled();
            case WARNING -> log.isWarnEnabled();
            case ERROR -> log.isErrorEnabled();
            case OFF -> false;
        };
    }

    @Override
    public void log(Level level, @Nullable ResourceBundle bundle, String message, @Nullable Throwable thrown) {
        if (level == Level.WARNING) {
            warnings.accept(localized(bundle, message));
        }
        if (isLoggable(level)) {
            at(level).setCause(thrown).log(localized(bundle, message));
        }
    }

    @Override
    public void log(Level level, @Nullable ResourceBundle bundle, String format, @Nullable Object... values) {
        if (isLoggable(level) || level == Level.WARNING) {
            String pattern = localized(bundle, format);
            String text = values == null || values.length == 0 ? pattern : formatted(pattern, values);
            if (level == Level.WARNING) {
                warnings.accept(text);
            }
            at(level).log(text);
        }
    }

    /** Formats a message. A wrong format is logged as it is. */
    private static String formatted(String format, @Nullable Object[] values) {
        return BestEffort.get("message of a plugin", format, () -> MessageFormat.format(format, values));
    }

    /** Logs a text with a place in the code of a program in another language. */
    public void log(Level level, String file, int line, String text) {
        if (isLoggable(level)) {
            at(level).addKeyValue("file", file).addKeyValue("line", line).log(text);
        }
    }

    private LoggingEventBuilder at(Level level) {
        return switch (level) {
            case ALL, TRACE -> log.atTrace();
            case DEBUG -> log.atDebug();
            case INFO -> log.atInfo();
            case WARNING -> log.atWarn();
            case ERROR, OFF -> log.atError();
        };
    }

    private static String localized(@Nullable ResourceBundle bundle, String key) {
        if (bundle == null) {
            return String.valueOf(key);
        }
        try {
            return bundle.getString(key);
        } catch (MissingResourceException e) {
            return key;
        }
    }
}
