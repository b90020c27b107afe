package dev.nereid.distribution;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static java.util.stream.Collectors.groupingBy;
import static java.util.stream.Collectors.toCollection;

import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import com.tngtech.archunit.library.dependencies.SliceRule;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Rules against cycles of packages and of classes. Static functions only.
 *
 * <p>A nested class belongs to its outermost one. A package and its subpackages are different packages.
 */
public final class PackageRules {
    private static final String ALL = "dev.nereid..";
    private static final String GENERATED = "..jmh_generated..";
    private static final int MAX_CYCLE = 5;

    private PackageRules() {}

    /** Returns the rule against package cycles. */
    public static SliceRule noCyclesOfPackages() {
        return slices().assignedFrom(new SliceAssignment() {
                    @Override
                    public SliceIdentifier getIdentifierOf(JavaClass type) {
                        return type.getPackageName().startsWith("dev.nereid.")
                                ? SliceIdentifier.of(type.getPackageName())
                                : SliceIdentifier.ignore();
                    }

                    @Override
                    public String getDescription() {
                        return "packages";
                    }
                })
                .should()
                .beFreeOfCycles();
    }

    /** Returns the rule against cycles of many classes. */
    public static ArchRule noLargeCyclesOfClasses() {
        return classes()
                .that()
                .resideInAPackage(ALL)
                .and()
                .resideOutsideOfPackage(GENERATED)
                .should(new ArchCondition<>("be in no cycle of more than " + MAX_CYCLE + " classes") {
                    private Collection<Set<String>> cycles = List.of();

                    @Override
                    public void init(Collection<JavaClass> all) {
                        cycles = cycles(graph(all));
                    }

                    @Override
                    public void check(JavaClass type, ConditionEvents events) {
                        // Once for all: see finish.
                    }

                    @Override
                    public void finish(ConditionEvents events) {
                        for (Set<String> cycle : cycles) {
                            if (cycle.size() > MAX_CYCLE) {
                                events.add(SimpleConditionEvent.violated(
                                        cycle, "cycle of " + cycle.size() + " classes: " + cycle));
                            }
                        }
                    }
                })
                .because("classes that all depend on each other can only be understood together");
    }

    private static Map<String, Set<String>> graph(Collection<JavaClass> classes) {
        Map<String, Set<String>> graph = new TreeMap<>();
        for (JavaClass type : classes) {
            Set<String> targets = graph.computeIfAbsent(outermost(type), name -> new TreeSet<>());
            for (Dependency dependency : type.getDirectDependenciesFromSelf()) {
                targets.add(outermost(dependency.getTargetClass().getBaseComponentType()));
            }
        }
        graph.values().forEach(targets -> targets.retainAll(graph.keySet()));
        return graph;
    }

    /** Finds the strongly connected components of a graph: depth first, then against the edges in the order of ends. */
    static Collection<Set<String>> cycles(Map<String, Set<String>> graph) {
        Map<String, Set<String>> reversed = new HashMap<>();
        graph.forEach((from, targets) -> targets.forEach(
                to -> reversed.computeIfAbsent(to, name -> new HashSet<>()).add(from)));
        Deque<String> ended = new ArrayDeque<>();
        Set<String> visited = new HashSet<>();
        graph.keySet().forEach(node -> visit(node, graph, visited, ended));
        Map<String, String> componentOf = new HashMap<>();
        Set<String> assigned = new HashSet<>();
        for (String root : ended) {
            Deque<String> component = new ArrayDeque<>();
            visit(root, reversed, assigned, component);
            component.forEach(node -> componentOf.put(node, root));
        }
        return componentOf.keySet().stream()
                .collect(groupingBy(componentOf::get, TreeMap::new, toCollection(TreeSet::new)))
                .values()
                .stream()
                .<Set<String>>map(component -> component)
                .toList();
    }

    private static void visit(String node, Map<String, Set<String>> graph, Set<String> visited, Deque<String> ended) {
        if (visited.add(node)) {
            graph.getOrDefault(node, Set.of()).forEach(next -> visit(next, graph, visited, ended));
            ended.push(node);
        }
    }

    private static String outermost(JavaClass type) {
        return type.getEnclosingClass().map(PackageRules::outermost).orElse(type.getName());
    }
}
