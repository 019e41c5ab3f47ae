# Installs raddle for the user who runs it, without administrator rights: %LOCALAPPDATA%\Programs\raddle\raddle.exe.
#
#   .\install.ps1 [-Dir DIR] [-Version VERSION] [-Replace] [-From ADDRESS]
#   .\install.ps1 -Uninstall [-Dir DIR]
#
# It needs Windows PowerShell 5.1 or a later PowerShell. It writes one file into DIR, and nothing else.
[CmdletBinding()]
param(
    [string]$Dir = '',
    [string]$Version = '',
    [switch]$Replace,
    [string]$From = '',
    [switch]$Uninstall
)

# make release sets these two.
$releases = ''
$key = ''

$ErrorActionPreference = 'Stop'
Set-StrictMode -Version Latest
$ProgressPreference = 'SilentlyContinue' # otherwise downloads take many times as long

function Stop-Install([string]$What, [string]$Next) {
    $text = "install.ps1: $What"
    if ($Next) { $text += "`nnext: $Next" }
    throw $text
}

# Get-Bytes reads what the releases have at a path.
function Get-Bytes([string]$Path) {
    $file = [System.IO.Path]::GetTempFileName()
    try {
        Invoke-WebRequest -UseBasicParsing -Uri "$script:releases/$Path" -OutFile $file -MaximumRedirection 5
        return , [System.IO.File]::ReadAllBytes($file)
    } catch {
        Stop-Install "$script:releases/$Path cannot be read: $($_.Exception.Message)" 'check the network and its proxy, and try again'
    } finally {
        Remove-Item -Force -ErrorAction SilentlyContinue $file
    }
}

# Read-Integer reads one of the two numbers of a signature in DER, as 32 bytes.
function Read-Integer([byte[]]$Der, [int]$At) {
    $length = [int]$Der[$At + 1]
    if ($Der[$At] -ne 2 -or $length -lt 1 -or $length -gt 33 -or $At + 2 + $length -gt $Der.Length) { Stop-Install 'the signature cannot be read' '' }
    $number = New-Object byte[] 32
    $skip = [Math]::Max(0, $length - 32)
    $count = $length - $skip
    [Array]::Copy($Der, $At + 2 + $skip, $number, 32 - $count, $count)
    return @{ Number = $number; Next = $At + 2 + $length }
}

# Test-Signature reports whether a text was signed with the key of the releases: ECDSA on P-256.
function Test-Signature([byte[]]$Text, [byte[]]$Signature) {
    $public = [Convert]::FromBase64String($script:key)
    if ($public.Length -ne 91) { Stop-Install 'the key of the releases is not one of ECDSA on P-256' '' }
    $der = [Convert]::FromBase64String([System.Text.Encoding]::ASCII.GetString($Signature))
    if ($der.Length -lt 8 -or $der[0] -ne 0x30) { return $false }
    $r = Read-Integer $der 2
    $s = Read-Integer $der $r.Next
    [byte[]]$flat = $r.Number + $s.Number
    $point = New-Object System.Security.Cryptography.ECPoint
    $point.X = [byte[]]$public[27..58]
    $point.Y = [byte[]]$public[59..90]
    $parameters = New-Object System.Security.Cryptography.ECParameters
    $parameters.Curve = [System.Security.Cryptography.ECCurve]::CreateFromFriendlyName('nistP256')
    $parameters.Q = $point
    $verifier = [System.Security.Cryptography.ECDsa]::Create($parameters)
    try {
        return $verifier.VerifyData($Text, $flat, [System.Security.Cryptography.HashAlgorithmName]::SHA256)
    } finally {
        $verifier.Dispose()
    }
}

# Compare-Release compares two versions in the order of semantic versions: below 0 if the first is older.
function Compare-Release([string]$First, [string]$Second) {
    $a = ($First -replace '^v', '' -replace '\+.*$', '') -split '-', 2
    $b = ($Second -replace '^v', '' -replace '\+.*$', '') -split '-', 2
    $order = ([version]$a[0]).CompareTo([version]$b[0])
    if ($order -ne 0) { return $order }
    if ($a.Count -ne $b.Count) { return $b.Count - $a.Count }
    if ($a.Count -eq 1) { return 0 }
    $x = $a[1] -split '\.'
    $y = $b[1] -split '\.'
    for ($i = 0; $i -lt [Math]::Min($x.Count, $y.Count); $i++) {
        $xNumber = $x[$i] -match '^[0-9]+$'
        $yNumber = $y[$i] -match '^[0-9]+$'
        if ($xNumber -and $yNumber) { $order = ([decimal]$x[$i]).CompareTo([decimal]$y[$i]) }
        elseif ($xNumber) { $order = -1 }
        elseif ($yNumber) { $order = 1 }
        else { $order = [string]::CompareOrdinal($x[$i], $y[$i]) }
        if ($order -ne 0) { return $order }
    }
    return $x.Count - $y.Count
}

# Get-Installed returns the version of the program in the place, '' if it is none of a release.
function Get-Installed([string]$Program) {
    $said = & $Program --version 2>$null | Select-Object -First 1
    if ("$said" -match '^raddle (v[0-9]+\.[0-9]+\.[0-9]+\S*)') { return $Matches[1] }
    return ''
}

# Confirm-Ours stops if a package has installed the program.
function Confirm-Ours([string]$Program) {
    $mark = Join-Path $Dir '..\lib\raddle\installed-by'
    if (Test-Path -LiteralPath $mark) { Stop-Install "$Program was installed by $(Get-Content -LiteralPath $mark -TotalCount 1)" 'use that, or name another directory: -Dir DIR' }
}

# Remove-Old removes what earlier updates moved aside, as far as it has ended.
function Remove-Old {
    Get-ChildItem -LiteralPath $Dir -Force -Filter '.raddle-*' -ErrorAction SilentlyContinue | Remove-Item -Force -ErrorAction SilentlyContinue
}

function Install-Program([string]$Program) {
    if ($From) { $script:releases = $From }
    if (-not $script:releases) { Stop-Install 'this script was made without the address of releases' 'take the script from a release, or name an address: -From ADDRESS' }
    if (-not $script:key) { Stop-Install 'this script was made without the key of the releases, so it cannot verify them' 'take the script from a release' }
    $script:releases = ($script:releases -split ' ')[0].TrimEnd('/')
    if ($script:releases -notmatch '^(https://|http://(127\.0\.0\.1|localhost):)') { Stop-Install "$script:releases is no https address" 'name one: -From ADDRESS' }
    [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12

    # A PowerShell that is emulated says so only in the registry.
    $machine = (Get-ItemProperty 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\Environment').PROCESSOR_ARCHITECTURE
    switch ($machine) {
        'AMD64' { $arch = 'amd64' }
        'ARM64' { $arch = 'arm64' }
        default { Stop-Install "there is no release for $machine" 'build raddle with Go: go install raddle.dev/cmd/raddle@latest' }
    }

    $folder = 'latest/download'
    if ($Version) { $folder = "download/v$($Version -replace '^v', '')" }
    [byte[]]$list = Get-Bytes "$folder/checksums.txt"
    [byte[]]$signature = Get-Bytes "$folder/checksums.txt.sig"
    if (-not (Test-Signature $list $signature)) { Stop-Install 'nothing was installed: the list of checksums was not signed with the key of the releases' 'try again later; if it stays so, report it' }
    $sums = @{}
    $found = ''
    foreach ($line in [System.Text.Encoding]::UTF8.GetString($list) -split "`n") {
        if ($line -match '^([0-9a-f]{64})  ?\*?(\S+)\s*$') {
            $sums[$Matches[2]] = $Matches[1]
            if ($Matches[2] -match '^raddle_([0-9]\S*)_linux_amd64\.tar\.gz$') { $found = "v$($Matches[1])" }
        }
    }
    if (-not $found) { Stop-Install 'the list of checksums names no release' 'try again later' }
    if ($Version -and $found -ne "v$($Version -replace '^v', '')") { Stop-Install "the server has $found at the place of $Version" 'try again later' }

    if (Test-Path -LiteralPath $Program) {
        Confirm-Ours $Program
        $old = Get-Installed $Program
        if (-not $Replace) {
            if (-not $old) { Stop-Install "$Program is no release of raddle, so it stays" 'to replace it: -Replace' }
            $order = Compare-Release $found $old
            if ($order -eq 0) { Write-Host "raddle $found is installed already: $Program"; return }
            if ($order -lt 0) { Stop-Install "$Program is $old, which is newer than $found, so it stays" 'to replace it: -Replace' }
        }
    }

    $name = "raddle_$($found.Substring(1))_windows_$arch"
    if (-not $sums.ContainsKey("$name.zip")) { Stop-Install "release $found has no $name.zip" 'build raddle with Go' }
    Write-Host "fetching raddle $found for windows/$arch"
    [byte[]]$archive = Get-Bytes "download/$found/$name.zip"
    $hash = [System.Security.Cryptography.SHA256]::Create()
    $sum = [BitConverter]::ToString($hash.ComputeHash($archive)).Replace('-', '').ToLowerInvariant()
    if ($sum -ne $sums["$name.zip"]) { Stop-Install "nothing was installed: $name.zip is not the file of the release (SHA-256 $sum)" 'try again' }

    New-Item -ItemType Directory -Force -Path $Dir | Out-Null
    Remove-Old
    $stage = Join-Path $Dir ".raddle-install-$PID.exe"
    Add-Type -AssemblyName System.IO.Compression
    Add-Type -AssemblyName System.IO.Compression.FileSystem
    $zip = New-Object System.IO.Compression.ZipArchive((New-Object System.IO.MemoryStream(, $archive)))
    try {
        $entry = $zip.GetEntry("$name/raddle.exe")
        if (-not $entry) { Stop-Install "$name.zip has no program in it" 'try again' }
        [System.IO.Compression.ZipFileExtensions]::ExtractToFile($entry, $stage, $true)
        & $stage --version | Out-Null
        if ($LASTEXITCODE -ne 0) { Stop-Install 'the program does not run here' '' }
        # A program that runs can be moved aside, but neither written nor removed.
        if (Test-Path -LiteralPath $Program) { Move-Item -Force -LiteralPath $Program (Join-Path $Dir ".raddle-old-$([Guid]::NewGuid()).exe") }
        Move-Item -LiteralPath $stage $Program
    } finally {
        $zip.Dispose()
        Remove-Item -Force -ErrorAction SilentlyContinue $stage
    }
    Remove-Old
    Write-Host "raddle $found is installed: $Program"
    if (($env:Path -split ';') -notcontains $Dir) {
        Write-Host "$Dir is not in your Path. To add it for new shells:"
        Write-Host "  [Environment]::SetEnvironmentVariable('Path', [Environment]::GetEnvironmentVariable('Path', 'User') + ';$Dir', 'User')"
    }
    Write-Host 'next: raddle try (without a key), or: raddle init'
}

function Uninstall-Program([string]$Program) {
    if (-not (Test-Path -LiteralPath $Program -PathType Leaf)) { Stop-Install "there is no raddle in $Dir" 'name the directory: -Dir DIR' }
    Confirm-Ours $Program
    Remove-Item -Force -LiteralPath $Program
    Remove-Old
    Write-Host "removed: $Program"
    if (-not (Get-ChildItem -LiteralPath $Dir -Force)) { Remove-Item -LiteralPath $Dir }
    Write-Host "yours, and left: $env:APPDATA\raddle and $env:LOCALAPPDATA\raddle, which also has the runs"
}

if (-not $Dir) { $Dir = Join-Path $env:LOCALAPPDATA 'Programs\raddle' }
$Dir = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Dir)
$program = Join-Path $Dir 'raddle.exe'
if ($Uninstall) { Uninstall-Program $program } else { Install-Program $program }
