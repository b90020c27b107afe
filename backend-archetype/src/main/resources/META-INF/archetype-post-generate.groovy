// Batch mode does not compare the parameters with their patterns.
import javax.lang.model.SourceVersion

def artifact = request.artifactId
def name = request.getPackage()
def type = request.properties['className']
def problem = null
if (!(artifact ==~ /[a-z][a-z0-9]*([-_][a-z0-9]+)*/)) {
    problem = "artifactId: '${artifact}' (expected: lower-case letters and digits, parts joined by - or _)"
} else if (!SourceVersion.isName(name)) {
    problem = "package: '${name}' (expected: a name of a Java package, by -Dpackage)"
} else if (!SourceVersion.isIdentifier(type) || SourceVersion.isKeyword(type)) {
    problem = "className: '${type}' (expected: a name of a Java class, by -DclassName)"
}
if (problem != null) {
    throw new IllegalArgumentException("${problem}; delete ${new File(request.outputDirectory, artifact)} and generate again")
}
